package replica

import (
	"crypto/ecdh"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
)

// secretLength is the length of the secret that two replicas share, in bytes.
const secretLength = 32

// Key is the key of one life of a controller. Its public half need not be kept secret. The owner of another key shares
// a secret with this one that nobody else can derive: it follows from either key and the other's public half.
type Key struct{ private *ecdh.PrivateKey }

// NewKey returns a random key.
func NewKey() (Key, error) {
	private, err := ecdh.X25519().GenerateKey(rand.Reader)
	return Key{private}, err
}

// Public returns the public half, as text.
func (k Key) Public() string {
	return base64.RawStdEncoding.EncodeToString(k.private.PublicKey().Bytes())
}

// Share returns the secret shared with the replica that has this public half.
func (k Key) Share(public string) ([]byte, error) {
	text, err := base64.RawStdEncoding.DecodeString(public)
	if err != nil {
		return nil, fmt.Errorf("the public key of a replica cannot be read: %w", err)
	}
	other, err := ecdh.X25519().NewPublicKey(text)
	if err != nil {
		return nil, fmt.Errorf("the public key of a replica cannot be used: %w", err)
	}
	common, err := k.private.ECDH(other)
	if err != nil {
		return nil, fmt.Errorf("the public key of a replica cannot be used: %w", err)
	}
	return hkdf.Key(sha256.New, common, nil, "bcsnet: a replica forwards a request", secretLength)
}
