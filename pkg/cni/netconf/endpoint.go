package netconf

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// maxReplicas bounds the number of URLs that are tried.
const maxReplicas = 64

// parseEndpoints parses a field that is one URL, several URLs with commas, or a list.
func parseEndpoints(o object, name string) (all []*url.URL) {
	var texts []string
	if raw := o.fields[name]; len(raw) > 0 && raw[0] == '[' {
		texts = read[[]string](o, name)
	} else if text := read[string](o, name); text != "" {
		texts = strings.Split(text, ",")
	}
	return parseURLs(o, name, texts)
}

func parseURLs(o object, name string, texts []string) (all []*url.URL) {
	seen := map[string]bool{}
	for i, text := range texts {
		u, err := ParseEndpoint(strings.TrimSpace(text))
		switch {
		case err != nil:
			o.problems.add(fmt.Sprintf("%s%s[%d]", o.path, name, i), "%q %v", clip(text), err)
		case !seen[u.String()]:
			seen[u.String()] = true
			all = append(all, u)
		}
	}
	if len(all) > maxReplicas {
		o.problems.add(o.path+name, "%d replicas are more than %d", len(all), maxReplicas)
		all = all[:maxReplicas]
	}
	return all
}

// ParseEndpoint returns the URL of a replica. A URL without a scheme means plain HTTP, as in the released plugin.
func ParseEndpoint(text string) (*url.URL, error) {
	if text != "" && !strings.Contains(text, "://") {
		text = "http://" + text
	}
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, errors.New("is not a URL")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New("is neither an http nor an https URL")
	case u.Hostname() == "":
		return nil, errors.New("names no host")
	case strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil:
		return nil, errors.New("has more than scheme, host and port")
	}
	return &url.URL{Scheme: u.Scheme, Host: u.Host}, nil
}
