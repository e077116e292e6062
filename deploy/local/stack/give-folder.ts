// Hands a data folder over to the user that its server runs as.
import { chownSync, lchownSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'

/** Changes the owner of a folder and of everything in it, unless it is that user's already. */
export function giveFolder(dir: string, { uid, gid }: { uid: number; gid: number }): void {
  if (statSync(dir).uid === uid) return
  // Children first, so that an interrupted change of owner is taken up again next time.
  for (const entry of readdirSync(dir, { recursive: true, encoding: 'utf8' })) {
    lchownSync(join(dir, entry), uid, gid)
  }
  chownSync(dir, uid, gid)
}
