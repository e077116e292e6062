/** Which address of a client counts, and whether it is kept; settings of the tenant. */

/**
 * `connection`: the address that the request comes from. `body`: `client_ip` of the signed body, for
 * a tenant whose own backend passes telemetry on.
 */
export const clientAddresses = ['connection', 'body'] as const
export type ClientAddress = (typeof clientAddresses)[number]

/** Bytes of the key that a tenant's addresses are hashed under. */
export const addressKeyBytes = 32
