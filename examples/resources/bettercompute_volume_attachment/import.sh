# The id is the volume's uri and the instance's uri, with | between them.
terraform import bettercompute_volume_attachment.data 'hetzner-cloud://root/main/web/volumes/data?token=env://HCLOUD_TOKEN|hetzner-cloud://root/main/web/instances/db-0?token=env://HCLOUD_TOKEN'
