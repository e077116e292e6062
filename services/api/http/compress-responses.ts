/**
 * Compresses large responses for clients that accept gzip. Only lists of a tenant's own data are
 * compressed: they contain no secret that the compressed size could reveal. Routes without
 * authentication are not compressed, so that strangers cannot use our CPU.
 */
import { constants } from 'node:zlib'
import compress from '@fastify/compress'
import type { FastifyInstance } from 'fastify'
import { compressedBytesMin } from '#shared/core/base/limits/rest-api.ts'

/** Options of a route with compressed responses. zlib runs on its own threads. */
export const compressed = {
  compress: {
    encodings: ['gzip' as const],
    threshold: compressedBytesMin,
    // Never compress on the event loop.
    syncThreshold: 0,
    zlibOptions: { level: constants.Z_BEST_SPEED },
  },
}

/** Registers the compression. Call it before the routes are added. */
export async function addCompression(app: FastifyInstance): Promise<void> {
  await app.register(compress, { global: false, globalDecompression: false })
}
