// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package digitalocean

import (
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// tag is a tag's record; what has it is found at the things themselves.
type tag struct {
	// Name is in the canonical spelling: the first one there ever was (tags are
	// case-insensitive, but "case stable").
	Name string `json:"name"`
}

// The resource types that can be tagged, and their parts of last_tagged_uri.
const (
	tagDroplet        = "droplet"
	tagImage          = "image"
	tagVolume         = "volume"
	tagVolumeSnapshot = "volume_snapshot"
)

func tagRoutes() []route {
	return []route{
		{"GET", "/tags", http.StatusOK, listTags},
		{"POST", "/tags", http.StatusCreated, createTag},
		{"GET", "/tags/{id}", http.StatusOK, getTag},
		{"DELETE", "/tags/{id}", http.StatusNoContent, deleteTag},
		{"POST", "/tags/{id}/resources", http.StatusNoContent, func(c *call) (any, error) { return nil, c.tagResources((*project).addTag) }},
		{"DELETE", "/tags/{id}/resources", http.StatusNoContent, func(c *call) (any, error) { return nil, c.tagResources((*project).removeTag) }},
	}
}

var tagPattern = regexp.MustCompile(`^[a-zA-Z0-9_\-:]{1,255}$`)

// checkTags refuses names that no tag can have.
func checkTags(names []string) error {
	for _, name := range names {
		if !tagPattern.MatchString(name) {
			return unprocessable("Tag name can only contain letters, numbers, colons, dashes, and underscores and must have at most 255 characters")
		}
	}
	return nil
}

// findTag finds a tag in any case; nil: there is none.
func (p *project) findTag(name string) *tag { return p.Tags[strings.ToLower(name)] }

// ensureTag finds a tag or makes it.
func (p *project) ensureTag(name string) *tag {
	key := strings.ToLower(name)
	if p.Spellings[key] == "" {
		p.Spellings[key] = name
	}
	if p.Tags[key] == nil {
		p.Tags[key] = &tag{Name: p.Spellings[key]}
	}
	return p.Tags[key]
}

// hasTag tells whether an object has a tag, in any case.
func (o *object) hasTag(name string) bool {
	return slices.ContainsFunc(o.Tags, func(t string) bool { return strings.EqualFold(t, name) })
}

// tags are the object's, never nil.
func (o *object) tags() []string { return append([]string{}, o.Tags...) }

func (p *project) addTag(o *object, t *tag) {
	if !o.hasTag(t.Name) {
		o.Tags = append(o.Tags, t.Name)
	}
}

func (p *project) removeTag(o *object, t *tag) {
	o.Tags = slices.DeleteFunc(o.Tags, func(name string) bool { return strings.EqualFold(name, t.Name) })
}

// taggable finds what can be tagged; nil: there is none.
func (p *project) taggable(resourceType, id string) *object {
	number, _ := strconv.ParseInt(id, 10, 64)
	switch resourceType {
	case tagDroplet:
		if d := p.Droplets[number]; d != nil {
			return &d.object
		}
	case tagImage:
		if i := p.Images[number]; i != nil {
			return &i.object
		}
	case tagVolume, tagVolumeSnapshot:
		return p.volumeTags(resourceType, id)
	}
	return nil
}

// eachTaggable calls for everything that can be tagged.
func (p *project) eachTaggable(do func(resourceType, id string, o *object)) {
	for _, d := range byID(p.Droplets) {
		do(tagDroplet, strconv.FormatInt(d.ID, 10), &d.object)
	}
	for _, i := range byID(p.Images) {
		do(tagImage, strconv.FormatInt(i.ID, 10), &i.object)
	}
	p.eachVolumeObject(do)
}

func (c *call) wireTag(t *tag) wireTag {
	w := wireTag{Name: t.Name}
	of := map[string]*wireTagged{
		tagDroplet: &w.Resources.Droplets, tagImage: &w.Resources.Images,
		tagVolume: &w.Resources.Volumes, tagVolumeSnapshot: &w.Resources.VolumeSnapshots,
	}
	c.p.eachTaggable(func(resourceType, id string, o *object) {
		if !o.hasTag(t.Name) {
			return
		}
		w.Resources.Count++
		of[resourceType].Count++
		// Things are visited in the order of their ids, mostly that of their
		// creation: so the last is taken for the last tagged.
		of[resourceType].LastTaggedURI = "https://" + c.r.Host + c.s.BasePath() + "/" + resourceType + "s/" + id
		w.Resources.LastTaggedURI = of[resourceType].LastTaggedURI
	})
	return w
}

func listTags(c *call) (any, error) {
	return list(c, "tags", byID(c.p.Tags), func(t *tag) any { return c.wireTag(t) })
}

// createTag of a tag that exists answers with it, in its first spelling.
func createTag(c *call) (any, error) {
	var request struct {
		Name string `json:"name"`
	}
	if err := c.decode(&request); err != nil {
		return nil, err
	}
	if err := checkTags([]string{request.Name}); err != nil {
		return nil, err
	}
	return map[string]any{"tag": c.wireTag(c.p.ensureTag(request.Name))}, nil
}

func getTag(c *call) (any, error) {
	t := c.p.findTag(c.id())
	if t == nil {
		return nil, notFound()
	}
	return map[string]any{"tag": c.wireTag(t)}, nil
}

// deleteTag takes the tag from everything that has it.
func deleteTag(c *call) (any, error) {
	t := c.p.findTag(c.id())
	if t == nil {
		return nil, notFound()
	}
	c.p.eachTaggable(func(_, _ string, o *object) { c.p.removeTag(o, t) })
	delete(c.p.Tags, strings.ToLower(t.Name))
	return nil, nil
}

// tagResources does something to a tag and all the things that a request names,
// or to none of them.
func (c *call) tagResources(do func(*project, *object, *tag)) error {
	var request struct {
		Resources []struct {
			ID   text   `json:"resource_id"`
			Type string `json:"resource_type"`
		} `json:"resources"`
	}
	if err := c.decode(&request); err != nil {
		return err
	}
	t := c.p.findTag(c.id())
	if t == nil {
		return notFound()
	}
	if len(request.Resources) == 0 {
		return unprocessable("resources can't be blank")
	}
	var objects []*object
	for _, resource := range request.Resources {
		o := c.p.taggable(resource.Type, string(resource.ID))
		if o == nil || c.missing(o) {
			return notFound()
		}
		objects = append(objects, o)
	}
	for _, o := range objects {
		do(c.p, o, t)
	}
	return nil
}
