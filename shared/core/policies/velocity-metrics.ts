/** What velocity rules count. */

/** The metrics that can be counted in a time window that ends with an event. */
export const velocityMetrics = [
  'sessions_per_device',
  'users_per_device',
  'platforms_per_device',
  /** How often one signal of the device went from detected to clean or back. */
  'signal_flips',
  'devices_per_user',
  'devices_per_session',
  /** The user's earlier devices, while the user is new on this one. */
  'new_device_of_user',
  /** By the addresses that events came from, as far as network data knows them. */
  'countries_per_user',
  'countries_per_device',
  'networks_per_device',
  'devices_per_network',
  'users_per_network',
  /** Whether the user was elsewhere, sooner than anybody travels. */
  'impossible_travel',
  /** By the phones that installs are on. */
  'installs_per_phone',
  'users_per_phone',
] as const

export type VelocityMetric = (typeof velocityMetrics)[number]
