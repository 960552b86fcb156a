// Package v1 holds the objects of bcsnet: BCSNetPool and BCSNetIP, in the group and version that
// bcs-netservice-controller introduced.
//
// +kubebuilder:object:generate=true
// +groupName=networkextension.bkbcs.tencent.com
package v1
