/**
 * Validates `--public-host`: distinguishes a DNS name or a public address from everything else that users type there, by tables
 * of the IANA registries. Called before a plan is made, and by the doctor. Never here: the network, files, or `new URL()`,
 * which reads `010.0.0.1` as 8.0.0.1.
 */
export { classifyHost } from './classify-host.ts';
export type { HostOptions, HostRefusalCode, HostVerdict, PublicHost } from './refusals.ts';
