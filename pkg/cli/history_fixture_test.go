package cli

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/history"
)

// history makes a part of the history of each file, which has a record in JSON on each line.
func (f *fixture) history(ctx context.Context, ts *testscript.TestScript, files []string) error {
	for _, file := range files {
		var records []history.Record
		for line := range strings.Lines(ts.ReadFile(file)) {
			var r history.Record
			if err := json.Unmarshal([]byte(line), &r); err != nil {
				return err
			}
			records = append(records, r)
		}
		if err := f.haveHistory(ctx, records...); err != nil {
			return err
		}
	}
	return nil
}

// haveHistory makes a part of the history of some records.
func (f *fixture) haveHistory(ctx context.Context, records ...history.Record) error {
	part, _, err := (&history.Part{}).Add(records)
	if err != nil {
		return err
	}
	data, n := part.Data()
	begins := records[0].Time
	return f.client.Create(ctx, &v1.BCSNetHistory{
		ObjectMeta: metav1.ObjectMeta{Name: history.Name(begins, "test")}, Since: begins.Format(time.RFC3339),
		Until: records[len(records)-1].Time.Format(time.RFC3339), Records: int32(n), Data: data,
	})
}
