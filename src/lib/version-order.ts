const form = /^(\d{1,9})\.(\d{1,9})\.(\d{1,9})(?:-([0-9A-Za-z.-]{1,64}))?$/;

export const isVersion = (text: string): boolean => form.test(text);

/**
 * Order of versions by Semantic Versioning, without build metadata.
 *
 * @returns a negative number when `one` is older than `other`, 0 when they are equal, NaN when one of them is not a version
 */
export function compareVersions(one: string, other: string): number {
  const [, ...first] = form.exec(one) ?? [];
  const [, ...second] = form.exec(other) ?? [];
  for (const index of [0, 1, 2]) {
    const difference = Number(first[index]) - Number(second[index]);
    if (difference !== 0) return difference;
  }
  return compareTags(first[3], second[3]);
}

/** A release version is newer than each of its pre-releases. */
function compareTags(one: string | undefined, other: string | undefined): number {
  if (one === undefined || other === undefined) return Number(one === undefined) - Number(other === undefined);
  const [first, second] = [one.split('.'), other.split('.')];
  for (let index = 0; index < Math.max(first.length, second.length); index += 1) {
    const difference = comparePart(first[index], second[index]);
    if (difference !== 0) return difference;
  }
  return 0;
}

function comparePart(one = '', other = ''): number {
  if (one === '' || other === '') return one.length - other.length;
  const [first, second] = [/^\d+$/.test(one), /^\d+$/.test(other)];
  if (first && second) return Number(one) - Number(other);
  if (first !== second) return first ? -1 : 1;
  return one < other ? -1 : Number(one > other);
}
