# A volume is imported by its name.
import {
  to = bettercompute_provider_volume.data
  id = provider::bettercompute::volume_uri(bettercompute_pool.web.uri, "data")
}
