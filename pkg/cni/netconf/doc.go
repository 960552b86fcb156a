// Package netconf parses the configuration of a CNI call: the network configuration on standard input, CNI_ARGS, and
// the node's config.json. It reads no file and sends no request.
package netconf
