/** Bounds of allow and deny lists. */

/**
 * Entries of one tenant, expired ones included. At 120 bytes of JSON each they are 1.2 MB in the
 * tenant directory, in sixteen shards of 75 KB.
 */
export const listEntriesMax = 10_000

/**
 * Entries of all tenants: twenty full lists. They are 24 MB in the tenant directory, and at 400
 * bytes each 80 MB in the memory of an edge.
 */
export const listEntriesOfAllMax = 200_000

/** Shards of a tenant's lists: a change writes one of them. */
export const listShards = 16

/** Entries in one answer, and without a `limit`. */
export const listPageMax = 500
export const listPageDefault = 50

/**
 * How often a console looks for shards to project. With the write to NATS, which takes some
 * milliseconds, a change is at every edge well within a second.
 */
export const listProjectMs = 200

/** Shards that one look projects: 640 a second. */
export const listProjectMax = 128
