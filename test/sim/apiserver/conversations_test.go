package apiserver_test

import (
	"fmt"
	"maps"
	"net/http"
	"strings"
)

const (
	ips    = "/apis/networkextension.bkbcs.tencent.com/v1/bcsnetips"
	leases = "/apis/coordination.k8s.io/v1/namespaces/conformance/leases"
	pods   = "/api/v1/namespaces/conformance/pods"

	partial = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
	merge   = "application/merge-patch+json"
)

// ip is an object for an address; with is put into its metadata, status is its status.
func ip(name, with, status string) string {
	return fmt.Sprintf(`{"apiVersion":"networkextension.bkbcs.tencent.com/v1","kind":"BCSNetIP","metadata":{"name":%q,"managedFields":[{}]%s},
		"spec":{"pool":"p","mask":24,"gateway":"10.0.0.1"},"status":%s}`, name, with, status)
}

const (
	available = `{"status":"Available"}`
	active    = `{"status":"Active","containerID":"c1","podName":"web-0","podNamespace":"conformance","host":"10.9.0.1"}`
	held      = `,"finalizers":["networkextension.bkbcs.tencent.com/held"]`
	typed     = `{"apiVersion":"networkextension.bkbcs.tencent.com/v1","kind":"BCSNetIP",`
	version   = `,"resourceVersion":"$rv"`
)

func post(path, body string) request { return request{method: http.MethodPost, path: path, body: body} }
func put(path, body string) request  { return request{method: http.MethodPut, path: path, body: body} }
func get(path string) request        { return request{method: http.MethodGet, path: path} }
func del(path, body string) request {
	return request{method: http.MethodDelete, path: path, body: body}
}

func patch(path, body string) request {
	return request{method: http.MethodPatch, path: path, body: body, contentType: merge}
}

func watch(path string, events int) request {
	return request{method: http.MethodGet, path: path, events: events}
}

// conversations are what is asked, one after the other. Each has names of its own.
func conversations() map[string][]request {
	all := map[string][]request{
		"create": {
			get(ips + "/10.0.1.1"),
			post(ips, ip("10.0.1.1", "", active)),
			post(ips, ip("10.0.1.1", "", active)),
			get(ips + "/10.0.1.1"),
			post(ips, ip("10.0.1.2", `,"resourceVersion":"7"`, available)),
			post(ips+"?dryRun=All", ip("10.0.1.3", "", available)),
			get(ips + "/10.0.1.3"),
			post("/apis/networkextension.bkbcs.tencent.com/v1/nothing", ip("10.0.1.4", "", available)),
			post("/api/v1/namespaces/nowhere/configmaps", `{"metadata":{"name":"a"}}`),
			post("/api/v1/namespaces/conformance/configmaps", `{"metadata":{"name":"a"},"data":{"k":"v"}}`),
		},
		"defaults": {
			post(ips, typed+`"metadata":{"name":"10.0.2.1"},"spec":{"pool":"p","mask":24,"gateway":"10.0.0.1"}}`),
			post(ips, ip("10.0.2.2", "", `{}`)),
			post(ips, ip("10.0.2.3", "", `{"containerID":"c","unknown":1}`)),
			post(
				ips, typed+`"metadata":{"name":"10.0.2.4"},"unknown":{"a":1},"spec":{"pool":"p","mask":24,"gateway":"10.0.0.1","unknown":[1]}}`),
		},
		"admission": {
			post(ips, ip("10.0.3.1", "", `{"status":"Active"}`)),
			post(ips, ip("10.0.3.1", "", `{"status":"Active","podUID":"u"}`)),
			put(ips+"/10.0.3.1", ip("10.0.3.1", version, `{"status":"Active"}`)),
			patch(ips+"/10.0.3.1", `{"status":{"podUID":null}}`),
			post(ips, ip("10.0.3.2", "", `{"status":"Reserved"}`)),
			post(ips, ip("10.0.3.3", "", `{"status":"Gone"}`)),
			post(ips, ip("10.0.3.4", "", `{"status":"Active","containerID":7}`)),
			post(ips, ip("10.0.3.5", "", `{"status":"Active","owner":"o","host":"10.0.0"}`)),
			post(ips, ip("10.0.3.6", "", `{"status":"Active","owner":"`+strings.Repeat("o", 254)+`"}`)),
			post(ips, ip("10.0.3.7", "", `{"status":"Active","owner":"o","setSize":17}`)),
			post(ips, ip("10.0.3.8", "", `{"status":"Active","owner":"o","supersededContainerIDs":["1","2","3","4","5"]}`)),
			post(ips, `{"metadata":{"name":"10.0.3.9"},"spec":{"pool":"p","mask":24}}`), // of no kind
			post(ips, typed+`"metadata":{"name":"10.0.3.9"},"spec":{"pool":"p","mask":24}}`),
			post(ips, typed+`"metadata":{"name":"10.0.3.9"},"spec":{"pool":"","mask":24,"gateway":"10.0.0.1"}}`),
			post(ips, typed+`"metadata":{"name":"10.0.3.9"},"spec":{"pool":"p","mask":240,"gateway":"10.0.0.1"}}`),
			post(ips, typed+`"metadata":{"name":"10.0.3.9"},"spec":{"pool":"p","mask":24,"gateway":"ten"}}`),
			post(ips, typed+`"metadata":{"name":"10.0.3.9"}}`),
			post(ips, ip("ten", "", available)),
			post(ips, ip("2001-0db8-0000-0000-0000-0000-0000-0020", "", available)),
			post(ips, ip("2001-db8-0-0-0-0-0-20", "", available)),
		},
		"update": {
			post(ips, ip("10.0.4.1", "", available)),
			put(ips+"/10.0.4.1", ip("10.0.4.1", version+held, active)),
			put(ips+"/10.0.4.1", ip("10.0.4.1", `,"resourceVersion":"$first"`, available)),
			put(ips+"/10.0.4.1", ip("10.0.4.1", "", available)),
			put(ips+"/10.0.4.1", ip("10.0.4.1", version+held, active)), // nothing changes: the same version
			get(ips + "/10.0.4.1"),
			put(ips+"/10.0.4.1", ip("10.0.4.1", version+`,"uid":"other"`, available)),
			put(ips+"/10.0.4.1", ip("10.0.4.1", version, `{"status":"Available","podUID":""}`)),
			put(ips+"/10.0.4.1?dryRun=All", ip("10.0.4.1", version, active)),
			put(ips+"/10.0.4.9", ip("10.0.4.9", version, available)),
			put(ips+"/10.0.4.1", ip("10.0.4.2", version, available)),
		},
		"finalizers": {
			post(ips, ip("10.0.5.1", held, active)),
			del(ips+"/10.0.5.1", ""),
			del(ips+"/10.0.5.1", ""),
			put(ips+"/10.0.5.1", ip("10.0.5.1", version+`,"finalizers":["networkextension.bkbcs.tencent.com/held","a.b/c"]`,
				active)),
			put(ips+"/10.0.5.1", ip("10.0.5.1", version+held, available)),
			put(ips+"/10.0.5.1", ip("10.0.5.1", version, available)),
			get(ips + "/10.0.5.1"),
		},
		"deletion": {
			post(ips, ip("10.0.6.1", "", available)),
			del(ips+"/10.0.6.1", `{"apiVersion":"v1","kind":"DeleteOptions","preconditions":{"resourceVersion":"1"}}`),
			del(ips+"/10.0.6.1", `{"apiVersion":"v1","kind":"DeleteOptions","preconditions":{"uid":"other"}}`),
			del(ips+"/10.0.6.1", `{"apiVersion":"v1","kind":"DeleteOptions","dryRun":["All"]}`),
			get(ips + "/10.0.6.1"),
			del(
				ips+"/10.0.6.1",
				`{"apiVersion":"v1","kind":"DeleteOptions","preconditions":{"resourceVersion":"$rv","uid":"$uid"}}`),
			get(ips + "/10.0.6.1"),
			del(ips+"/10.0.6.1", ""),
		},
	}
	maps.Copy(all, moreConversations())
	return all
}

func moreConversations() map[string][]request {
	list := func(query string) request { return get(ips + "?fieldSelector=spec.pool%3Dlist" + query) }
	inList := func(name, status string) request {
		return post(ips, strings.Replace(ip(name, "", status), `"pool":"p"`, `"pool":"list"`, 1))
	}
	seen := func(query string, events int) request {
		return watch(ips+"?watch=true&fieldSelector=spec.pool%3Dwatch"+query, events)
	}
	inWatch := func(r request) request {
		r.body = strings.Replace(r.body, `"pool":"p"`, `"pool":"watch"`, 1)
		return r
	}
	return map[string][]request{
		"lists": {
			list(""),
			inList("10.0.7.2", available), inList("10.0.7.1", active), inList("10.0.7.3", available), inList("10.0.7.4", active),
			list(""),
			list("&limit=2"),
			inList("10.0.7.25", available), // not in the next page, which is of the first one's moment
			list("&limit=2&continue=$continue"),
			list("&limit=500"),
			list("&resourceVersion=$first&resourceVersionMatch=Exact"),
			list("&resourceVersion=$rv&resourceVersionMatch=NotOlderThan"),
			list(",status.status%3DActive"),
			list(",status.status!%3DActive"),
			list(",status.host%3D10.9.0.1"),
			list(",status.setSize%3D1"),
			list("&continue=nonsense"),
			{method: http.MethodGet, path: ips + "?fieldSelector=spec.pool%3Dlist", accept: "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"},
			{method: http.MethodGet, path: ips + "/10.0.7.1", accept: partial},
		},
		"too new": {
			get(ips + "?resourceVersion=99999999&resourceVersionMatch=NotOlderThan"),
		},
		"watches": {
			inWatch(post(ips, ip("10.0.8.1", "", available))),
			inWatch(put(ips+"/10.0.8.1", ip("10.0.8.1", version+held, active))),
			inWatch(put(ips+"/10.0.8.1", ip("10.0.8.1", version, available))),
			inWatch(post(ips, ip("10.0.8.2", "", available))),
			del(ips+"/10.0.8.1", ""),
			seen("&resourceVersion=$first&timeoutSeconds=5", 4),
			seen(",status.status%3DActive&resourceVersion=$first&timeoutSeconds=5", 2), // comes to match, and no longer does
			seen("&resourceVersion=0&timeoutSeconds=5", 1),
			seen(
				"&resourceVersion=0&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=5", 2),
			seen("&resourceVersion=1&timeoutSeconds=5", 1), // too old
			{method: http.MethodGet, path: ips + "?watch=1&fieldSelector=spec.pool%3Dwatch&resourceVersion=$first&timeoutSeconds=5", accept: partial, events: 2},
		},
		"leases": {
			post(leases, `{"metadata":{"name":"l","labels":{"a":"b"}},"spec":{"holderIdentity":"x","leaseDurationSeconds":15}}`),
			put(
				leases+"/l", `{"metadata":{"name":"l","namespace":"conformance","labels":{"a":"b"}},"spec":{"holderIdentity":"y","leaseDurationSeconds":15}}`),
			put(
				leases+"/l", `{"metadata":{"name":"l","namespace":"conformance","resourceVersion":"$first"},"spec":{"holderIdentity":"y","leaseDurationSeconds":15}}`),
			put(
				leases+"/l", `{"metadata":{"name":"l","namespace":"conformance","resourceVersion":"$first"},"spec":{"holderIdentity":"z","leaseDurationSeconds":15}}`),
			get(leases + "?labelSelector=a%3Db"),
			{
				method: http.MethodPatch, path: leases + "/m?fieldManager=f&force=true",
				contentType: "application/apply-patch+yaml",
				body:        `{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"m","namespace":"conformance"},"spec":{"holderIdentity":"m","leaseDurationSeconds":40}}`,
			},
			{
				method: http.MethodPatch, path: leases + "/m?fieldManager=f&force=true",
				contentType: "application/apply-patch+yaml",
				body:        `{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"m","namespace":"conformance"},"spec":{"holderIdentity":"n","leaseDurationSeconds":40}}`,
			},
		},
		"pods": {
			post(pods, `{"metadata":{"name":"p1"},"spec":{"nodeName":"n1","containers":[{"name":"c","image":"i"}]}}`),
			{method: http.MethodPut, path: pods + "/p1/status", body: `{"metadata":{"name":"p1","namespace":"conformance"},"status":{"phase":"Running","podIP":"10.0.0.9","podIPs":[{"ip":"10.0.0.9"}]}}`},
			del(pods+"/p1", `{"apiVersion":"v1","kind":"DeleteOptions","preconditions":{"uid":"other"}}`),
			del(pods+"/p1", ""),
			del(pods+"/p1", `{"apiVersion":"v1","kind":"DeleteOptions","gracePeriodSeconds":10}`),
			del(pods+"/p1", `{"apiVersion":"v1","kind":"DeleteOptions","gracePeriodSeconds":60}`),
			del(pods+"/p1", `{"apiVersion":"v1","kind":"DeleteOptions","gracePeriodSeconds":0}`),
			get(pods + "/p1"),
			post(pods, `{"metadata":{"name":"p2"},"spec":{"containers":[{"name":"c","image":"i"}]}}`),
			del(pods+"/p2", ""),
			get(pods + "/p2"),
		},
		"patches": {
			post(ips, ip("10.0.9.1", "", available)),
			patch(ips+"/10.0.9.1", `{"metadata":{"labels":{"a":"b"}},"status":{"owner":"o"}}`),
			patch(ips+"/10.0.9.1", `{"metadata":{"resourceVersion":"$first"},"status":{"owner":"p"}}`),
			patch(ips+"/10.0.9.1", `{"status":{"owner":null},"metadata":{"labels":null}}`),
			patch(ips+"/10.0.9.9", `{"status":{}}`),
		},
	}
}
