// Package configmap makes the leader maintain objects by one ConfigMap of another system: it reads only that object,
// remembers the last valid document, and reports errors. It does not know the form of documents: packages galaxyconfig
// and hostnicconfig do.
package configmap
