# A new volume from a snapshot that no state has, such as one made by an action.
resource "bettercompute_provider_volume" "restored" {
  name          = "restored"
  pool          = bettercompute_pool.web.uri
  size_gib      = 50
  from_snapshot = provider::bettercompute::snapshot_uri(bettercompute_provider_volume.data.uri, "before-upgrade")
}
