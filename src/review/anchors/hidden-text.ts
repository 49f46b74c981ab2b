/**
 * Characters that turn text around, or cannot be seen (Trojan Source, CVE-2021-42574; Unicode, Default_Ignorable_Code_Point):
 * bidirectional marks, zero width, tags, fillers, line separators, variation selectors that follow each other. Joiners stay:
 * emoji and several scripts need them.
 */
export const invisible =
  /(?!\u200c|\u200d|[\ufe00-\ufe0f])\p{Default_Ignorable_Code_Point}|[\u2028\u2029\ufff9-\ufffb]|(?<=[\ufe00-\ufe0f])[\ufe00-\ufe0f]/gu;
/** Control characters except the line feed and the tab. */
export const control = /[^\P{Cc}\n\t]/gu;
