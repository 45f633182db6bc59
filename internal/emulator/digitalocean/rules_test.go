// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package digitalocean_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator/digitalocean"
	"github.com/better-compute/terraform-provider-bettercompute/internal/emulator/openapitest"
)

const newDroplet = `{"name":"a","region":"fra1","size":"s-1vcpu-1gb","image":"debian-12-x64","tags":["web"]}`

// TestRules sends what the API refuses, and looks at how it says so.
func TestRules(t *testing.T) {
	s := digitalocean.New(digitalocean.Options{DropletLimit: 2})
	handler := described(t, s, openapitest.AnswersOnly())
	droplet := func(old, new string) string { return strings.Replace(newDroplet, old, new, 1) }
	if status, body, _ := do(t, handler, "POST", "/v2/droplets", newDroplet); status != 202 {
		t.Fatalf("%d %s", status, body)
	}
	one := fmt.Sprintf("/v2/droplets/%d", s.Droplets()[0].ID)

	for _, test := range []struct {
		method, path, body string
		status             int
		want               string
	}{
		{"GET", "/v2/nothing", "", 404, "The resource you were accessing could not be found."},
		{"PUT", "/v2/droplets", "{}", 404, "not_found"},
		{"GET", "/v1/droplets", "", 404, "not_found"},
		{"GET", "/v2/droplets/4711", "", 404, "not_found"},
		{"GET", "/v2/droplets/x", "", 404, "not_found"},
		{"DELETE", "/v2/droplets/4711", "", 404, "not_found"},
		{"GET", "/v2/actions/4711", "", 404, "not_found"},
		{"GET", "/v2/images/4711", "", 404, "not_found"},
		{"GET", "/v2/images/none", "", 404, "not_found"},
		{"GET", "/v2/vpcs/none", "", 404, "not_found"},
		{"GET", "/v2/tags/none", "", 404, "not_found"},
		{"GET", "/v2/account/keys/none", "", 404, "not_found"},
		{"GET", "/v2/droplets?page=0", "", 400, "bad_request"},
		{"GET", "/v2/droplets?per_page=x", "", 400, "bad_request"},
		{"GET", "/v2/droplets?tag_name=web&name=a", "", 400, "can't be combined"},
		{"GET", "/v2/droplets?type=cats", "", 400, "invalid type"},
		{"DELETE", "/v2/droplets", "", 400, "tag_name"},
		{"POST", "/v2/droplets", "{", 400, "malformed"},
		{"POST", "/v2/droplets", "{}", 422, "Name can't be blank"},
		{"POST", "/v2/droplets", `{"name":1}`, 422, "name is invalid"},
		{"POST", "/v2/droplets", droplet(`"a"`, `"a_b"`), 422, "Only valid hostname characters"},
		{"POST", "/v2/droplets", droplet(`"a"`, `"`+strings.Repeat("a", 256)+`"`), 422, "hostname"},
		{"POST", "/v2/droplets", droplet("fra1", "mars1"), 422, "invalid region"},
		{"POST", "/v2/droplets", droplet("fra1", "fra9"), 422, "invalid region"},
		{"POST", "/v2/droplets", droplet("fra1", "sfo2"), 422, "Region is not available"},
		{"POST", "/v2/droplets", droplet("s-1vcpu-1gb", "gpu-h100x1-80gb"), 422, "Size is not available in this region."},
		{"POST", "/v2/droplets", droplet("s-1vcpu-1gb", "s-3vcpu-1gb"), 422, "invalid size"},
		{"POST", "/v2/droplets", droplet("s-1vcpu-1gb", "huge"), 422, "invalid size"},
		{"POST", "/v2/droplets", droplet("debian-12-x64", "none"), 422, "invalid image"},
		{"POST", "/v2/droplets", droplet("debian-12-x64", "112929454"), 422, "invalid image"},
		{"POST", "/v2/droplets", droplet("debian-12-x64", "gpu-h100x1-base"), 422, "disk of at least 100 GB"},
		{"POST", "/v2/droplets", droplet(`"web"`, `"a.b"`), 422, "Tag name"},
		{"POST", "/v2/droplets", droplet(`"tags"`, `"ssh_keys":[1,"aa:bb"],"tags"`), 422, "1, aa:bb are invalid key identifiers"},
		{"POST", "/v2/droplets", droplet(`"tags"`, `"vpc_uuid":"x","tags"`), 422, "VPC not found"},
		{"POST", "/v2/droplets", droplet(`"tags"`, `"volumes":["x"],"tags"`), 404, "not_found"},
		{"POST", "/v2/droplets", droplet(`"tags"`, `"volumes":[{"id":"x"}],"tags"`), 404, "not_found"},
		{"POST", "/v2/droplets", droplet(`"tags"`, `"volumes":["x"`+strings.Repeat(`,"x"`, 15)+`],"tags"`), 422, "cannot attach more volumes"},
		{"POST", "/v2/droplets", droplet(`"tags"`, `"public_networking":false,"ipv6":true,"tags"`), 422, "IPv6"},
		{"POST", "/v2/droplets", droplet(`"tags"`, `"backup_policy":{"plan":"daily","hour":4},"tags"`), 422, "backup_policy"},
		{"POST", "/v2/droplets", droplet(`"tags"`, `"backups":true,"backup_policy":{"plan":"daily","hour":5},"tags"`), 422, "hour"},
		{"POST", "/v2/droplets", droplet(`"tags"`, `"user_data":"`+strings.Repeat("x", 64<<10+1)+`","tags"`), 422, "User data"},
		{"POST", "/v2/droplets", droplet(`"name":"a"`, `"names":["a","b","c","d","e","f","g","h","i","j","k"]`), 422, "at most 10"},
		{"POST", "/v2/droplets", droplet(`"name":"a"`, `"name":"a","names":["b"]`), 422, "both"},
		{"POST", "/v2/droplets", droplet(`"name":"a"`, `"names":["a","b"]`), 422, "exceed your droplet limit"},
		{"POST", one + "/actions", `{"type":"dance"}`, 422, "Invalid type"},
		{"POST", one + "/actions", `{"type":"snapshot"}`, 422, "Name can't be blank"},
		{"POST", one + "/actions", `{"type":"resize","size":"none"}`, 422, "invalid size"},
		{"POST", "/v2/droplets/actions?tag_name=web", `{"type":"rename","name":"x"}`, 422, "Invalid type"},
		{"POST", "/v2/droplets/actions?tag_name=none", `{"type":"power_on"}`, 404, "not_found"},
		{"POST", "/v2/tags", `{"name":"a.b"}`, 422, "Tag name"},
		{"POST", "/v2/tags", `{"name":"a=b"}`, 422, "Tag name"},
		{"POST", "/v2/tags", `{"name":"a/b"}`, 422, "Tag name"},
		{"POST", "/v2/tags", `{"name":""}`, 422, "Tag name"},
		{"POST", "/v2/tags", `{"name":"` + strings.Repeat("a", 256) + `"}`, 422, "Tag name"},
		{"POST", "/v2/tags/web/resources", `{"resources":[]}`, 422, "resources"},
		{"POST", "/v2/tags/web/resources", `{"resources":[{"resource_id":1,"resource_type":"droplet"}]}`, 404, "not_found"},
		{"POST", "/v2/vpcs", `{"name":"a b","region":"fra1"}`, 422, "name is invalid"},
		{"POST", "/v2/vpcs", `{"name":"a","region":"mars1"}`, 422, "region"},
		{"POST", "/v2/vpcs", `{"name":"a","region":"fra1","ip_range":"8.8.8.0/24"}`, 422, "ip_range"},
		{"DELETE", one + "/destroy_with_associated_resources/dangerous", "", 400, "X-Dangerous"},
		{"GET", one + "/destroy_with_associated_resources/status", "", 404, "not_found"},
		{"POST", one + "/destroy_with_associated_resources/retry", "", 404, "not_found"},
		{"DELETE", one + "/destroy_with_associated_resources/selective", `{"volumes":["x"]}`, 404, "not_found"},
		// Whatever is null or empty is as if it weren't there.
		{"POST", "/v2/droplets", `{"name":"b","region":"","size":"s-1vcpu-1gb","image":136681983,"ssh_keys":null,"tags":null,"volumes":null,"vpc_uuid":"","user_data":"","backup_policy":null}`, 202, `"name":"b"`},
		{"POST", "/v2/droplets", newDroplet, 422, "exceed your droplet limit"},
	} {
		status, body, header := do(t, handler, test.method, test.path, test.body)
		if status != test.status || !strings.Contains(body, test.want) {
			t.Errorf("%s %s %.80s: %d %s", test.method, test.path, test.body, status, body)
		}
		checkHeaders(t, status, body, header)
	}
	if got := s.Droplets(); len(got) != 2 {
		t.Errorf("Droplets %+v", got)
	}
}

// checkHeaders looks at what every answer has.
func checkHeaders(t *testing.T, status int, body string, header http.Header) {
	t.Helper()
	if header.Get("RateLimit-Limit") == "" || header.Get("RateLimit-Remaining") == "" || header.Get("RateLimit-Reset") == "" || header.Get("X-Request-Id") == "" {
		t.Errorf("headers %v", header)
	}
	var e struct {
		ID        string `json:"id"`
		Message   string `json:"message"`
		RequestID string `json:"request_id"`
	}
	if status < 400 {
		return
	}
	if err := json.Unmarshal([]byte(body), &e); err != nil || e.ID == "" || e.Message == "" || e.RequestID != header.Get("X-Request-Id") {
		t.Errorf("error %s (%v)", body, err)
	}
}

func TestTokens(t *testing.T) {
	s := digitalocean.New(digitalocean.Options{Projects: emulator.Projects{"token": "one", "other": "two"}})
	handler := described(t, s)
	do(t, handler, "POST", "/v2/droplets", newDroplet)
	for token, want := range map[string]string{"": "401 ", "Bearer nonsense": "401 ", "Bearer other": `200 {"droplets":[],`, "Bearer token": `200 {"droplets":[{`} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://digitalocean.test/v2/droplets", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", token)
		response, err := emulator.Transport(handler).RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		var body strings.Builder
		if _, err := fmt.Fprint(&body, response.StatusCode, " "); err != nil {
			t.Fatal(err)
		}
		buffer := make([]byte, 64)
		n, _ := response.Body.Read(buffer)
		body.Write(buffer[:n])
		if !strings.HasPrefix(body.String(), want) || response.Header.Get("RateLimit-Limit") != "5000" || response.Header.Get("RateLimit-Remaining") != "4999" {
			t.Errorf("%q: %s %v", token, &body, response.Header)
		}
		if err := response.Body.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestPages: the links lead from page to page, with the filters.
func TestPages(t *testing.T) {
	s := digitalocean.New(digitalocean.Options{})
	handler := described(t, s)
	for i := range 23 {
		do(t, handler, "POST", "/v2/droplets", strings.Replace(newDroplet, `"a"`, fmt.Sprintf(`"d%d"`, i), 1))
	}
	type answer struct {
		Droplets []struct {
			ID int64 `json:"id"`
		} `json:"droplets"`
		Links struct {
			Pages map[string]string `json:"pages"`
		} `json:"links"`
		Meta struct {
			Total int `json:"total"`
		} `json:"meta"`
	}
	list := func(query string) (a answer) {
		t.Helper()
		status, body, _ := do(t, handler, "GET", "/v2/droplets"+query, "")
		if err := json.Unmarshal([]byte(body), &a); err != nil || status != 200 || a.Meta.Total != 23 {
			t.Fatalf("%d %s", status, body)
		}
		return a
	}
	for _, test := range []struct {
		query string
		count int
		links string
	}{
		{"", 20, "last next"},
		{"?page=2", 3, "first prev"},
		{"?per_page=5&page=2&tag_name=WEB", 5, "first last next prev"},
		{"?per_page=200", 23, ""},
		{"?page=9", 0, "first prev"},
	} {
		a := list(test.query)
		var names []string
		for _, name := range []string{"first", "last", "next", "prev"} {
			if link := a.Links.Pages[name]; link != "" {
				names = append(names, name)
				if strings.Contains(test.query, "tag_name") && (!strings.Contains(link, "tag_name=WEB") || !strings.Contains(link, "per_page=5")) {
					t.Errorf("%s: link %s", test.query, link)
				}
			}
		}
		if len(a.Droplets) != test.count || strings.Join(names, " ") != test.links || a.Droplets == nil {
			t.Errorf("%s: %d, links %v", test.query, len(a.Droplets), a.Links)
		}
	}
}

// TestRateLimit uses up the burst, then the hour.
func TestRateLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := digitalocean.New(digitalocean.Options{RateLimit: 10, Burst: 4})
		handler := described(t, s)
		get := func(want int, remaining, retry string) {
			t.Helper()
			status, body, header := do(t, handler, "GET", "/v2/droplets", "")
			if status != want || header.Get("RateLimit-Limit") != "10" || header.Get("RateLimit-Remaining") != remaining || header.Get("Retry-After") != retry {
				t.Errorf("%d %s %v", status, body, header)
			}
			if status == 429 && !strings.Contains(body, `"id":"too_many_requests","message":"API rate limit exceeded."`) {
				t.Errorf("body %s", body)
			}
		}
		start := time.Now()
		for _, left := range []string{"9", "8", "7", "6"} {
			get(200, left, "")
		}
		get(429, "0", "60")
		<-time.After(20 * time.Second)
		get(429, "0", "40")
		<-time.After(40 * time.Second)
		for _, left := range []string{"5", "4", "3", "2"} {
			get(200, left, "")
		}
		<-time.After(time.Minute)
		get(200, "1", "")
		get(200, "0", "")
		// Of the hour nobody says how long to wait.
		get(429, "0", "")
		<-time.After(time.Until(start.Add(time.Hour)))
		get(200, "3", "")
	})
}

// TestKeysLimit: listing keys has a limit of its own.
func TestKeysLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := digitalocean.New(digitalocean.Options{RateLimit: 5000})
		for i := range 11 {
			if status, _, header := do(t, s, "GET", "/v2/account/keys", ""); (status == 429) != (i == 10) || (header.Get("Retry-After") == "60") != (i == 10) {
				t.Errorf("call %d: %d %v", i, status, header)
			}
		}
		if status, _, _ := do(t, s, "GET", "/v2/account", ""); status != 200 {
			t.Errorf("another call: %d", status)
		}
	})
}
