// Package view has the read models: what there is to say of a pool, an address, a host, a claim, a pod or the whole
// cluster, and which command comes next. Commands and the page print the same models. Nothing here changes an object.
package view
