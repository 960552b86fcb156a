// Package configmap has the leader keep objects as one ConfigMap of another system says: it reads only that object,
// remembers the last valid document, and reports errors. It does not know the form of documents: packages galaxyconfig
// and hostnicconfig do.
package configmap
