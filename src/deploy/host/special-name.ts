import { type SpecialUseName, specialUseNames } from './registries.ts';

const byDomain: ReadonlyMap<string, SpecialUseName> = new Map(specialUseNames.map((entry) => [entry.domain, entry]));

/** The most specific special-use domain that a lower case ASCII name is or lies under, if one. */
export function specialName(name: string): SpecialUseName | undefined {
  const labels = name.split('.');
  for (const at of labels.keys()) {
    const entry = byDomain.get(labels.slice(at).join('.'));
    if (entry) return entry;
  }
  return undefined;
}
