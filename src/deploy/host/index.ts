/**
 * What `--public-host` may be. Lives here: telling a DNS name or a public address from everything else people type there,
 * by tables of the IANA registries. Who calls it: `src/deploy`, before a plan is made, and its doctor for the addresses a
 * name resolves to. Must never be here: the network, files, or `new URL()`, which reads `010.0.0.1` as 8.0.0.1.
 */
export { classifyHost } from './classify-host.ts';
export type { HostOptions, HostRefusalCode, HostVerdict, PublicHost } from './refusals.ts';
