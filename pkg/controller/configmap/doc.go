// Package configmap keeps objects, on the leader, in line with a ConfigMap of another system: it reads only that
// object, remembers the last valid document, and reports errors. It does not know the form of documents: packages
// galaxyconfig and hostnicconfig do.
package configmap
