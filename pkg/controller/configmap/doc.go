// Package configmap has the leader keep objects as one ConfigMap of another system says: it reads that object alone,
// remembers the last good document, and tells what is wrong. It knows no document: packages galaxyconfig and
// hostnicconfig do.
package configmap
