resource "bettercompute_snapshot" "before_upgrade" {
  volume = bettercompute_provider_volume.data.uri
  name   = "before-upgrade"
}

# A volume made from it.
resource "bettercompute_provider_volume" "restored" {
  name          = "restored"
  pool          = bettercompute_pool.ocean.uri
  region        = "fra1"
  size_gib      = bettercompute_snapshot.before_upgrade.size_gib
  from_snapshot = bettercompute_snapshot.before_upgrade.uri
}
