package apiserver

import (
	"encoding/json"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// machines is the group of KubeVirt, the only one that the controller discovers.
const machines = "kubevirt.io"

// discovery returns the versions of a group, or the resources of one version; nil for any other path.
func (s *Server) discovery(path string) []byte {
	var answer any
	switch strings.Trim(path, "/") {
	case "apis/" + machines:
		v := metav1.GroupVersionForDiscovery{GroupVersion: machines + "/v1", Version: "v1"}
		answer = metav1.APIGroup{
			TypeMeta: metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}, Name: machines,
			Versions: []metav1.GroupVersionForDiscovery{v}, PreferredVersion: v,
		}
	case "apis/" + machines + "/v1":
		list := metav1.APIResourceList{
			TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: machines + "/v1",
		}
		for _, k := range builtIn() {
			if k.group == machines {
				list.APIResources = append(list.APIResources, metav1.APIResource{
					Name: k.resource, Kind: k.kind, Namespaced: k.namespaced, Verbs: metav1.Verbs{"get", "list",
						"watch"},
				})
			}
		}
		answer = list
	default:
		return nil
	}
	body, _ := json.Marshal(answer) // it can be written
	return body
}

// discovers answers a discovery request; nil for any other request.
func (s *Server) discovers(r *http.Request) *http.Response {
	if body := s.discovery(r.URL.Path); body != nil && r.Method == http.MethodGet {
		return s.respond(r, http.StatusOK, body)
	}
	return nil
}
