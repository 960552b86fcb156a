// Package claim decides which constraints a pod's claim puts on its addresses, and what happens to kept addresses. These
// decisions are pure; the controller carries them out.
package claim
