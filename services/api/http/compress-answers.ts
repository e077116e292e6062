/**
 * Compresses large answers for clients that take gzip. Only lists of a tenant's own data are: they
 * contain no secret that the sizes of compressed answers could give away. Routes without a key are
 * not compressed, so that strangers cannot spend our processors on it.
 */
import { constants } from 'node:zlib'
import compress from '@fastify/compress'
import type { FastifyInstance } from 'fastify'
import { compressedBytesMin } from '#shared/core/base/limits.ts'

/** Options of a route whose answers are compressed. zlib works on threads of its own. */
export const compressed = {
  compress: {
    encodings: ['gzip' as const],
    threshold: compressedBytesMin,
    // Nothing is compressed on the event loop.
    syncThreshold: 0,
    zlibOptions: { level: constants.Z_BEST_SPEED },
  },
}

/** Call it before the routes are added. */
export async function addCompression(app: FastifyInstance): Promise<void> {
  await app.register(compress, { global: false, globalDecompression: false })
}
