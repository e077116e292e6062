// Builds the console's pages once, before any test of a run asks for them.
import { buildPages } from '../../../services/console/serve/build-pages.ts'

export async function setup(): Promise<void> {
  await buildPages()
}
