/** Offsets in the header of a 64-bit ELF file (System V ABI). */
const at = { programs: 0x20, sections: 0x28, programSize: 0x36, programCount: 0x38, sectionCount: 0x3c, names: 0x3e };

/**
 * An ELF program without symbols and debug information, as a distribution ships it: they lie behind all that the system loads. The
 * symbols that addons bind to are loaded, and stay.
 *
 * @returns the unchanged bytes of any other file
 */
export function withoutSymbols(program: Buffer): Buffer {
  const isElf64 = program.subarray(0, 4).toString('latin1') === '\x7fELF' && program[4] === 2 && program[5] === 1;
  if (!isElf64) return program;
  const first = Number(program.readBigUInt64LE(at.programs));
  const [size, count] = [program.readUInt16LE(at.programSize), program.readUInt16LE(at.programCount)];
  const ends = Array.from({ length: count }, (_, index) => {
    const heading = first + index * size;
    return Number(program.readBigUInt64LE(heading + 0x08) + program.readBigUInt64LE(heading + 0x20));
  });
  const stripped = Buffer.from(program.subarray(0, Math.max(first + count * size, ...ends)));
  stripped.writeBigUInt64LE(0n, at.sections);
  stripped.writeUInt16LE(0, at.sectionCount);
  stripped.writeUInt16LE(0, at.names);
  return stripped;
}
