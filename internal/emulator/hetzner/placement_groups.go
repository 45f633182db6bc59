// Copyright (c) The bettercompute authors
// SPDX-License-Identifier: MPL-2.0

package hetzner

import "net/http"

type placementGroup struct{ object }

// members are the servers of a group.
func (c *call) members(g *placementGroup) []int64 {
	members := []int64{}
	for _, v := range byID(c.p.Servers) {
		if v.PlacementGroup == g.ID {
			members = append(members, v.ID)
		}
	}
	return members
}

func (c *call) wirePlacementGroup(g *placementGroup) wirePlacementGroup {
	return wirePlacementGroup{
		ID: g.ID, Name: g.Name, Labels: g.Labels, Type: "spread", Created: stamp(g.Created), Servers: c.members(g),
	}
}

func listPlacementGroups(c *call) (any, error) {
	all := rows(c.p.PlacementGroups, func(g *placementGroup) any { return c.wirePlacementGroup(g) })
	all = c.oneOf("type", all, func(row) string { return "spread" })
	return c.list("placement_groups", all, "id", "name", "created")
}

func createPlacementGroup(c *call) (any, error) {
	var request struct {
		Name   string            `json:"name"`
		Labels map[string]string `json:"labels"`
		Type   string            `json:"type"`
	}
	if err := c.decode(&request); err != nil {
		return nil, err
	}
	var problems fields
	anyName(&problems, request.Name)
	checkLabels(&problems, request.Labels)
	if request.Type != "spread" {
		problems.add("type", "must be spread")
	}
	if err := problems.err(); err != nil {
		return nil, err
	}
	if nameTaken(c.p.PlacementGroups)(request.Name) {
		return nil, notUnique("placement group", "name")
	}
	g := &placementGroup{c.newObject(request.Name, request.Labels)}
	c.p.PlacementGroups[g.ID] = g
	return map[string]any{"placement_group": c.wirePlacementGroup(g), "action": nil}, nil
}

func getPlacementGroup(c *call) (any, error) {
	g, err := get(c, "placement group", c.p.PlacementGroups)
	if err != nil {
		return nil, err
	}
	return map[string]any{"placement_group": c.wirePlacementGroup(g)}, nil
}

func updatePlacementGroup(c *call) (any, error) {
	g, err := get(c, "placement group", c.p.PlacementGroups)
	if err != nil {
		return nil, err
	}
	if err := c.update("placement group", &g.object, nameTaken(c.p.PlacementGroups), anyName); err != nil {
		return nil, err
	}
	return map[string]any{"placement_group": c.wirePlacementGroup(g)}, nil
}

// addToPlacementGroup needs a server that is off.
func addToPlacementGroup(c *call) (any, error) {
	v, err := c.unlocked()
	if err != nil {
		return nil, err
	}
	var request struct {
		PlacementGroup int64 `json:"placement_group"`
	}
	if err := c.decode(&request); err != nil {
		return nil, err
	}
	if request.PlacementGroup == 0 {
		var problems fields
		problems.add("placement_group", "must not be empty")
		return nil, problems.err()
	}
	if err := c.checkGroup(request.PlacementGroup); err != nil {
		return nil, err
	}
	switch {
	case v.PlacementGroup != 0:
		return nil, refused(http.StatusUnprocessableEntity, "already_in_placement_group", "server is already part of a placement group")
	case v.Status != statusOff:
		return nil, notStopped()
	}
	return c.acted(c.act("add_to_placement_group", v.ID, nil, c.s.options.Boot/8,
		effect{Group: &request.PlacementGroup}, wireResource{request.PlacementGroup, "placement_group"}))
}

// removeFromPlacementGroup works on running servers too. What is answered about a
// server that is in no group is not known.
func removeFromPlacementGroup(c *call) (any, error) {
	v, err := c.unlocked()
	if err != nil {
		return nil, err
	}
	if v.PlacementGroup == 0 {
		return nil, invalid("server is not part of a placement group")
	}
	return c.acted(c.act("remove_from_placement_group", v.ID, nil, c.s.options.Boot/8,
		effect{Group: new(int64(0))}, wireResource{v.PlacementGroup, "placement_group"}))
}

// deletePlacementGroup takes the servers out of the group.
func deletePlacementGroup(c *call) (any, error) {
	g, err := get(c, "placement group", c.p.PlacementGroups)
	if err != nil {
		return nil, err
	}
	for _, v := range c.p.Servers {
		if v.PlacementGroup == g.ID {
			v.PlacementGroup = 0
		}
	}
	delete(c.p.PlacementGroups, g.ID)
	return noContent(nil)
}
