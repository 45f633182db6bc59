import {
  to = bettercompute_volume_attachment.data
  id = "hetzner-cloud://root/main/web/volumes/data?token=env://HCLOUD_TOKEN|hetzner-cloud://root/main/web/instances/db-0?token=env://HCLOUD_TOKEN"
}
