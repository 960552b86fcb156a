package controlplane

import (
	"encoding/binary"
	"errors"
	"path/filepath"

	"go.etcd.io/bbolt"
)

// raisedBy is the increase of versions that the runbook for a restore recommends.
const raisedBy = 1_000_000_000

// RaiseVersions raises the versions in etcd's data directory, and marks all earlier ones as compacted, as `etcdutl
// snapshot restore --bump-revision 1000000000 --mark-compacted` does. etcd must have ended in an orderly way.
func RaiseVersions(dataDir string) error {
	db, err := bbolt.Open(filepath.Join(dataDir, "member", "snap", "db"), 0o600, &bbolt.Options{Timeout: startTimeout})
	if err != nil {
		return err
	}
	return errors.Join(db.Update(func(tx *bbolt.Tx) error {
		keys, meta := tx.Bucket([]byte("key")), tx.Bucket([]byte("meta"))
		if keys == nil || meta == nil {
			return errors.New("this is no data of etcd")
		}
		last, _ := keys.Cursor().Last()
		if len(last) < 8 {
			return errors.New("etcd has stored nothing")
		}
		// A revision consists of the change's number, "_", and a number within the change.
		revision := make([]byte, 17)
		binary.BigEndian.PutUint64(revision, binary.BigEndian.Uint64(last)+raisedBy)
		revision[8] = '_'
		return errors.Join(keys.Put(revision, nil), meta.Put([]byte("scheduledCompactRev"), revision))
	}), db.Close())
}
