data "bettercompute_instances" "web" {
  pool = bettercompute_pool.web.uri
}

# An inventory.
output "machines" {
  value = { for machine in data.bettercompute_instances.web.instances : machine.name => machine.address }
}

# All that the pool holds, taken into this state. Machines whose names changed in
# the cloud have no uri.
import {
  for_each = { for machine in data.bettercompute_instances.web.instances : machine.name => machine.uri if machine.uri != null }
  to       = bettercompute_instance.web[each.key]
  id       = each.value
}
