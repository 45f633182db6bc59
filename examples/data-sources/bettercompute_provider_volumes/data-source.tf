data "bettercompute_provider_volumes" "web" {
  pool = bettercompute_pool.web.uri
}

# An inventory: which volumes are on no machine, and cost money all the same?
output "unattached" {
  value = [for volume in data.bettercompute_provider_volumes.web.volumes : volume.name if length(volume.machine_ids) == 0]
}

# All that the pool holds, taken into this state. Volumes whose names changed in the
# cloud, and shares, have no uri.
import {
  for_each = { for volume in data.bettercompute_provider_volumes.web.volumes : volume.name => volume.uri if volume.uri != null }
  to       = bettercompute_provider_volume.data[each.key]
  id       = each.value
}
