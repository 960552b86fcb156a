// The CustomResourceDefinitions of Cluster API for tests: test/clusterapi reads them from the module cache. Nothing is
// compiled, and nothing of it is in our programs.
module github.com/bcsnet/bcsnet/hack/clusterapi

go 1.26

require sigs.k8s.io/cluster-api v1.14.2
