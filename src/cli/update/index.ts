/**
 * `oratorio self-update`, for an installation by `install.sh`:
 * 1. reads the checksum list of the release, verifies its signature if this installation has a key, and refuses an older version;
 * 2. downloads the tarball beside the installed versions, compares its checksum, and unpacks it;
 * 3. starts the new version in a temporary home, and runs one turn of the demo model;
 * 4. moves it to its final directory, and switches the link `current` to it;
 * 5. replaces a running Hub. Agent servers continue their turns, and restart with the new version when they are idle.
 *
 * Steps 1 to 3 change nothing that is in use. Each later change is one rename. If the new Hub does not start, the link is switched
 * back to the previous version, and its Hub is started.
 */
export { addressOption, downloadReleaseFile, releaseAddress, releasedAddress } from './address.ts';
export { type Found, findRelease } from './find-release.ts';
export { hubCommandAt } from './hub-command.ts';
export { installRelease, tarballBytes } from './install-release.ts';
export { type Installation, installationAt, type OwnInstallation } from './installation.ts';
export { checksumIn } from './release.ts';
