package httpapi

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"net/http"
	"strconv"
	"strings"
)

// prove signs a request that a replica forwards, with the secret that only the two replicas share. The signature covers
// everything that the receiver uses, so that no part of it is valid for another request.
func prove(secret []byte, from, to, method, uri string, h http.Header, body [sha256.Size]byte) string {
	mac := hmac.New(sha256.New, secret)
	for _, part := range []string{
		from, to, method, uri, h.Get(headerArrived), h.Get(headerCaller), h.Get(headerTimeout), h.Get("X-Request-Id"),
		h.Get(headerUser), strings.Join(h[headerHosts], ";"), strconv.Itoa(len(h[headerHosts])),
	} {
		var length [8]byte
		binary.BigEndian.PutUint64(length[:], uint64(len(part)))
		mac.Write(length[:])
		mac.Write([]byte(part))
	}
	mac.Write(body[:])
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}
