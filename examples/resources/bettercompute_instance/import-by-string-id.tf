import {
  to = bettercompute_instance.db
  id = "hetzner-cloud://root/main/web/instances/db/4711?token=env://HCLOUD_TOKEN"
}
