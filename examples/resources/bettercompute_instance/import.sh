# The id is the instance's uri: the account's, with /POOL/instances/NAME behind the account's name, and /NUMBER for a machine that something else made.
terraform import 'bettercompute_instance.web["web-0"]' 'hetzner-cloud://root/main/web/instances/web-0?token=env://HCLOUD_TOKEN'
terraform import bettercompute_instance.db 'hetzner-cloud://root/main/web/instances/db/4711?token=env://HCLOUD_TOKEN'
