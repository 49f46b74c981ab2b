/**
 * Section of a changelog, without its heading.
 * @param version `1.2.3`, or `Unreleased`
 * @throws Error when the changelog has no such section, or an empty one
 */
export function releaseNotes(changelog: string, version: string): string {
  const sections = changelog.split(/^## /m).slice(1);
  const section = sections.find((text) => text.split(/\s/, 1)[0] === version);
  const notes = section?.slice(section.indexOf('\n') + 1).trim() ?? '';
  if (notes === '')
    throw new Error(`CHANGELOG.md has no entries below "## ${version}". Add the section, then tag again.`);
  return `${notes}\n`;
}

interface MadeTarball {
  readonly platform: { readonly name: string };
  readonly file: string;
  readonly packedBytes: number;
  readonly unpackedBytes: number;
}

/** Table of the tarballs. Only the tarball of the build platform can be tried. */
export function platformNotes(tarballs: readonly MadeTarball[], isTried: (platform: string) => boolean): string {
  const mb = (bytes: number): string => `${(bytes / 1e6).toFixed(0)} MB`;
  const rows = tarballs.map(
    ({ platform, file, packedBytes, unpackedBytes }) =>
      `| ${platform.name} | \`${file}\` | ${mb(packedBytes)} | ${mb(unpackedBytes)} | ${isTried(platform.name) ? 'installed and used' : 'built, not tried'} |`,
  );
  return [
    '### Tarballs',
    '',
    '| Platform | File | Packed | Unpacked | State |',
    '|---|---|---|---|---|',
    ...rows,
    '',
  ].join('\n');
}
