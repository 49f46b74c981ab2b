/**
 * `oratorio self-update`, for an installation by `install.sh`:
 * 1. reads the list of the release, its signature where this installation has a key, and refuses an older version;
 * 2. downloads the tarball beside the installed versions, compares its checksum, and unpacks it;
 * 3. starts the new version in a home of its own, with one turn of the demo model;
 * 4. moves it to its place, and lets the link `current` lead to it;
 * 5. replaces a running Hub. Agent servers continue their turns, and restart with the new version when they are idle.
 *
 * Before step 4 nothing that runs is changed; each change after it is one rename. When the new Hub does not start, the link leads to
 * the earlier version again, and its Hub starts.
 */
export { releaseAddress } from './address.ts';
export { findRelease } from './find-release.ts';
export { hubCommandAt } from './hub-command.ts';
export { installRelease } from './install-release.ts';
export { type Installation, installationAt, type OwnInstallation } from './installation.ts';
export { compareVersions } from './version-order.ts';
