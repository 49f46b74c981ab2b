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
