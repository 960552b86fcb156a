package httpapi

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"log/slog"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/cache"

	"github.com/bcsnet/bcsnet/pkg/httpapi/wire"
	"github.com/bcsnet/bcsnet/pkg/internal/failpoint"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/index"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// headerReceipt is in the answer to an ADD and in the next requests of its node: an address, its version and time,
// signed by the answering replica. It is the only trace of an ADD outside the store.
const headerReceipt = "Bcsnet-Receipt"

// receipt is the content of the header.
type receipt struct {
	addr    netip.Addr
	version uint64
	// at is the time of the answer to the ADD, by the API server's clock, in whole seconds.
	at time.Time
}

func (g receipt) String() string {
	return g.addr.String() + "," + strconv.FormatUint(g.version, 10) + "," + strconv.FormatInt(g.at.Unix(), 10)
}

// sign returns the signature of a receipt with a secret that replicas share.
func (g receipt) sign(secret []byte) string {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte("receipt " + g.String()))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// readReceipt returns the receipt in a header; ok is false if there is none or no replica has signed it.
func readReceipt(text string, secret []byte) (g receipt, ok bool) {
	parts := strings.Split(text, ",")
	if len(parts) != 4 || secret == nil {
		return g, false
	}
	var errs [3]error
	var seconds int64
	g.addr, errs[0] = netip.ParseAddr(parts[0])
	g.version, errs[1] = strconv.ParseUint(parts[1], 10, 64)
	seconds, errs[2] = strconv.ParseInt(parts[2], 10, 64)
	g.at = time.Unix(seconds, 0)
	return g, errs == [3]error{} && hmac.Equal([]byte(g.sign(secret)), []byte(parts[3]))
}

// receipts issues receipts to nodes, and compares the receipts in requests with the store.
type receipts struct {
	index  *index.Index
	leases *store.Client
	// secret returns the secret that replicas share; without one there are no receipts.
	secret   func() []byte
	refusals *refusals
	log      *slog.Logger
	// compared has the receipts that are newer than the restored store, with the time of the last restore that was
	// known then. The object of such an address may be gone permanently, and the node sends the receipt until its next
	// ADD.
	compared *cache.LRUExpireCache
}

// Bounds of the cache of receipts: each node sends one.
const (
	maxCompared  = 16384
	comparedTime = 10 * time.Minute
)

// give adds the receipt to the answer of an ADD. data is the data of the answer.
func (x *receipts) give(w http.ResponseWriter, data any) {
	given, ok := data.(wire.Allocation)
	if !ok || x.secret == nil {
		return
	}
	addr, err := netip.ParseAddr(given.Address.IPAddr)
	if l, known := x.index.Leases.Get(addr); err == nil && known {
		x.write(w, receipt{addr, l.Version, x.leases.Now()})
	}
}

func (x *receipts) write(w http.ResponseWriter, g receipt) {
	if secret := x.secret(); secret != nil {
		w.Header().Set(headerReceipt, g.String()+","+g.sign(secret))
	}
}

// compareStore refuses a request for an address if the store may have been restored; see compare.
func (x *receipts) compareStore(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := x.compare(w, r, callOf(r).route); err != nil {
			x.refusals.answer(w, r, err)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// compare checks that the API server still has the address in a node's receipt. If it has an older version of the
// address, its store was restored, and no replica that knew the newer version has told this one. Then requests for
// addresses are refused; others are answered as usual. A receipt from before the last known restore proves nothing new:
// the node gets a receipt of the current store, so that it does not send the old one to replicas that start later.
func (x *receipts) compare(w http.ResponseWriter, r *http.Request, op route) error {
	text := r.Header.Get(headerReceipt)
	if text == "" || x.secret == nil || failpoint.Broken("receipt") {
		return nil
	}
	shown, ok := readReceipt(text, x.secret())
	if !ok {
		return nil
	}
	// The time of a receipt has whole seconds: a receipt of the second of a restore counts as an earlier one.
	switch l, _ := x.index.Leases.Get(shown.addr); {
	case l.Version >= shown.version || !x.leases.Follows():
		return nil
	case !shown.at.After(x.leases.Noticed()):
		x.write(w, receipt{shown.addr, l.Version, x.leases.Now()})
		return nil
	}
	noticed := x.leases.Noticed()
	if at, ok := x.compared.Get(text); ok && at == noticed {
		return nil
	}
	forgotten, err := x.leases.Forgotten(r.Context(), shown.addr, shown.version)
	if forgotten {
		x.log.Warn("the store was put back before this replica began to watch it: the leases are read anew, "+
			"and nothing new is given for a while", "error", err, "request_id", idOf(r), "given_at", shown.at, "wait",
			ipam.OrphanTime)
	}
	if err == nil && !forgotten {
		x.compared.Add(text, noticed, comparedTime)
	}
	if err == nil || !op.adds() {
		return nil
	}
	return ipam.Refuse(ipam.ReasonUnavailable, "it is not known whether %s is still as its node was answered: %v",
		shown.addr, err).WithHint("ask again")
}
