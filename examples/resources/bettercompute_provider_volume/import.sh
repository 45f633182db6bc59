# The id is the volume's uri: the account's, with /POOL/volumes/NAME behind the account's name.
terraform import bettercompute_provider_volume.data 'hetzner-cloud://root/main/web/volumes/data?token=env://HCLOUD_TOKEN'
