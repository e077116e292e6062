/**
 * Scopes of API keys. Every key reads its tenant's data; a scope adds what else the key may do. The
 * key that comes with a tenant has none: apps and partners hold it, so it must not change anything.
 */

/** `read` adds nothing: it is for a named key that reads only. */
export const apiKeyScopes = ['read', 'alerts:write', 'lists:write', 'labels:write'] as const
export type ApiKeyScope = (typeof apiKeyScopes)[number]

/** Names of keys, among those of one tenant. */
export const apiKeyNamePattern = /^[a-z0-9][a-z0-9-]{0,31}$/
