data "bettercompute_snapshots" "web" {
  pool = bettercompute_pool.web.uri
}

# The newest snapshot of each volume, by the volume's name.
output "newest" {
  value = {
    for volume, snapshots in {
      for snapshot in data.bettercompute_snapshots.web.snapshots : snapshot.volume => snapshot... if snapshot.volume != null
    } : volume => reverse(snapshots)[0].created_at
  }
}

# All that the pool holds, taken into this state, by volume and name.
import {
  for_each = {
    for snapshot in data.bettercompute_snapshots.web.snapshots : "${snapshot.volume}/${snapshot.name}" => snapshot.uri if snapshot.uri != null
  }
  to = bettercompute_snapshot.all[each.key]
  id = each.value
}
