// Install roots for tests: each byte of a root is one number, so that a test can name it.

import {
  type InstallRoot,
  installRootBytes,
  toInstallRoot,
} from '#shared/core/installs/install-token.ts'
import { noApps } from '#shared/io/tenants/directory/tenant-apps.ts'

/** The 32 bytes of a root. */
export const rootBytes = (byte: number): Buffer => Buffer.alloc(installRootBytes, byte)

/** The keys of a root. */
export const installRoot = (epoch: number, byte = epoch): InstallRoot =>
  toInstallRoot(epoch, rootBytes(byte))

/** The root of an edge for tokens of epochs that it does not know. */
export const decoyRoot = installRoot(1, 255)

/** What a tenant without installs has. */
export const noInstalls = { installRoots: [], sharedSecretOff: false, apps: noApps } as const
