/**
 * The root keys of Google and Apple, as SubjectPublicKeyInfo in base64. Certificates of one root
 * key differ (a copy of Google's RSA root ended in May 2026), so a root is matched by its key
 * alone.
 *
 * Sources: android.googleapis.com/attestation/root and the documentation of Android's
 * hardware-backed keystore; Apple's page of private PKI (Apple App Attestation Root CA).
 */
import { toBase64 } from './encodings.ts'

export type RootKey = { name: string; publicKeyInfo: string }

export type AttestationRoots = {
  keyAttestation: readonly RootKey[]
  appAttest: readonly RootKey[]
}

/** @param publicKeyInfo DER */
export const findRoot = (roots: readonly RootKey[], publicKeyInfo: Uint8Array): RootKey | null => {
  const given = toBase64(publicKeyInfo)
  return roots.find((root) => root.publicKeyInfo === given) ?? null
}

export const attestationRoots: AttestationRoots = {
  keyAttestation: [
    {
      name: 'Google RSA root f92009e853b6b045',
      publicKeyInfo:
        'MIICIjANBgkqhkiG9w0BAQEFAAOCAg8AMIICCgKCAgEAr7bHgiuxpwHsK7Qui8xUFmOr75gvMsd/dTEDDJdS' +
        'Sxtf6An7xyqpRR90PL2abxM1dEqlXnf2tqw1Ne4Xwl5jlRfdnJLmN0pTy/4lj4/7tv0Sk3iiKkypnEUtR6Wf' +
        'MgH0QZfKHM1+di+y9TFRtv6y//0rb+T+W8a9nsNL/ggjnar86461qO0rOs2cXjp3kOG1FEJ5MVmFmBGtnrKp' +
        'a73XpXyTqRxB/M0n1n/W9nGqC4FSYa04T6N5RIZGBN2z2MT5IKGbFlbC8UrW0DxW7AYImQQcHtGl/m00QLVW' +
        'utHQoVJYnFPlXTcHYvASLu+RhhsbDmxMgJJ0mcDpvsC4PjvB+TxywElgS70vE0XmLD+OJtvsBslHZvPBKCOd' +
        'T0MS+tgSOIfga+z1Z1g7+DVagf7quvmag8jfPioyKvxnK/EgsTUVi2ghzq8wm27ud/mIM7AY2qEORR8Go3TV' +
        'B4HzWQgpZrt3i5MIlCaY504LzSRiigHCzAPlHws+W0rB5N+er5/2pJKnfBSDiCiFAVtCLOZ7gLiMm0jhO2B6' +
        'tUXHI/+MRPjy02i59lINMRRev56GKtcd9qO/0kUJWdZTdA2XoS82ixPvZtXQpUpuL12ab+9EaDK8Z4RHJYYf' +
        'CT3Q5vNAXaiWQ+8PTWm2QgBR/bkwSWc+NpUFgNPN9PvQi8WEg5UmAGMCAwEAAQ==',
    },
    {
      name: 'Google Key Attestation CA1',
      publicKeyInfo:
        'MHYwEAYHKoZIzj0CAQYFK4EEACIDYgAEI9ojcU7fPlsFCjxy6IRqzgeOoK0b+YsV9FPQywiyw8EQRTkJ9u3q' +
        'wfnI4DGoSLlBqClTXJfgfCcZvs60FikNMHnu4fkRzObfgDkU2KNXezT9/RQ+XvNslxPHrHCowhGr',
    },
  ],
  appAttest: [
    {
      name: 'Apple App Attestation Root CA',
      publicKeyInfo:
        'MHYwEAYHKoZIzj0CAQYFK4EEACIDYgAERTHhmLW07ATaFQIEVwTtT4dyctdhNbJhFs/Ii2FdCgAHGbpphY3+' +
        'd8qjuDngIN3WVhQUBHAoMeQ/cLiP1sOUtgjqK9auYen1mMEvRq9Sk3Jm5X8U62H+xTD3FE9TgS41',
    },
  ],
}
