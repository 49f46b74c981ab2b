/** Environment variables by which the parts of a run share paths. */
export const variables = {
  /** Directory of the run: data of the engine, files of the tests. Removed afterwards. */
  directory: 'ORATORIO_STACK_DIRECTORY',
  /** Root file system of the base image, as a tar. */
  base: 'ORATORIO_STACK_BASE',
  /** Name of the cgroup of all containers. */
  cgroup: 'ORATORIO_STACK_CGROUP',
  /** Directory of 64 MiB for a user without root. */
  small: 'ORATORIO_STACK_SMALL',
} as const;

/** @throws Error when a test is run without its engine */
export function variable(name: keyof typeof variables): string {
  const value = process.env[variables[name]];
  if (value) return value;
  throw new Error(`✖ ${variables[name]} is not set: these tests need an engine of their own. Run: npm run test:stack`);
}

/** Exit code of a run that could not begin: no root, no network, no engine. As `EX_TEMPFAIL` of sysexits.h. */
export const notTested = 75;

/** Names of the images that every run has. */
export const images = {
  /** Debian with git, tini and certificates, and the authority of the tests among them. */
  base: 'oratorio-test-base:bookworm',
  product: 'oratorio:test',
  gateway: 'oratorio-test-gateway:2.11',
} as const;

/** Address of this machine for containers: an address for trials between networks (RFC 2544). */
export const hostAddress = '198.18.0.1';
