# Servers that were made by hand or by another tool, by their names and their ids in
# the cloud.
locals {
  servers = {
    web-0 = "4711"
    web-1 = "4712"
  }
}

import {
  for_each = local.servers
  to       = bettercompute_instance.web[each.key]
  id       = provider::bettercompute::instance_uri(bettercompute_pool.web.uri, each.key, each.value)
}

resource "bettercompute_instance" "web" {
  for_each = local.servers

  name  = each.key
  pool  = bettercompute_pool.web.uri
  offer = "cx23"
  image = "debian-13"
}
