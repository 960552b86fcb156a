package node

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// tokens determines the age of the plugins' token. It measures the time for which this process has seen the token,
// because clocks may be hours off or be set meanwhile.
type tokens struct {
	options Options

	mu    sync.Mutex
	text  string
	since time.Time
}

// age returns the time since the token was renewed, and the lifetime of such tokens; 0 if the token does not contain
// it.
func (t *tokens) age() (age, life time.Duration, err error) {
	path := filepath.Join(t.options.ConfigDir, tokenFile)
	content, err := os.ReadFile(path)
	if err != nil {
		return 0, 0, err
	}
	text := strings.TrimSpace(string(content))
	life = tokenLife(text)
	now := t.options.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	if text != t.text {
		first := t.text == ""
		t.text, t.since = text, now
		if info, err := os.Stat(path); first && err == nil { // an earlier process has copied it
			if before := now.Sub(info.ModTime()); before > 0 && before <= life {
				t.since = now.Add(-before)
			}
		}
	}
	return now.Sub(t.since), life, nil
}

// tokenLife returns the time from the issue of a token to its expiry; 0 if the text is not a token of an API server.
// The token is not verified.
func tokenLife(text string) time.Duration {
	parts := strings.Split(text, ".")
	if len(parts) != 3 {
		return 0
	}
	claims, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return 0
	}
	var c struct {
		Issued  int64 `json:"iat"`
		Expires int64 `json:"exp"`
	}
	const longest = 1 << 32 // seconds, longer than the life of any token
	if json.Unmarshal(claims, &c) != nil || c.Issued <= 0 || c.Expires <= c.Issued || c.Expires-c.Issued > longest {
		return 0
	}
	return time.Duration(c.Expires-c.Issued) * time.Second
}
