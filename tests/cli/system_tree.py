"""Made-up systems: folders sys, proc, dev and opt as the kernel would show them, for VRAMPLAN_SYSFS and,
mounted over /sys, for the real librocm_smi64."""
import os

MIB, GIB = 1 << 20, 1 << 30


class System:
    def __init__(self, top):
        self.top, self.cards, self.nodes = top, 0, 1
        self.sysfs = os.path.join(top, "sys")
        os.makedirs(self.sysfs)
        self.put("sys/class/kfd/kfd/topology/nodes/0/gpu_id", 0)
        self.put("sys/class/kfd/kfd/topology/nodes/0/name", "")
        self.properties("sys/class/kfd/kfd/topology/nodes/0", cpu_cores_count=8, simd_count=0)
        for name in ("io_links", "mem_banks"):
            os.makedirs(os.path.join(top, "sys/class/kfd/kfd/topology/nodes/0", name))

    def put(self, path, text):
        path = os.path.join(self.top, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as f:
            f.write(text if isinstance(text, bytes) else ("%s\n" % text).encode())

    def properties(self, folder, **values):
        self.put(folder + "/properties", "\n".join("%s %d" % v for v in values.items()))

    def host(self, total, available, kernel="6.8.0-made-up", rocm=None):
        self.put("proc/meminfo", "MemTotal:       %d kB\nMemFree:          1 kB\nMemAvailable:   %d kB"
                 % (total // 1024, available // 1024))
        self.put("proc/sys/kernel/osrelease", kernel)
        self.put("sys/module/amdgpu/initstate", "live")
        if rocm:
            self.put("opt/rocm/.info/version", rocm)

    def card(self, pci, device, vram, used, units, arch, parts=1, bank=None, hive=0, **files):
        """A card, and its nodes of the compute driver; returns these nodes' gpu_ids."""
        domain, bus, slot = pci.split(":")
        location = (int(bus, 16) << 8) | (int(slot.split(".")[0], 16) << 3) | int(slot[-1])
        folder = "sys/devices/pci%s:00/%s" % (domain, pci)
        name = "card%d" % self.cards
        for k, v in dict(vendor="0x1002", device="0x%04x" % device, revision="0x00", vbios_version="made-up",
                         uevent="DRIVER=amdgpu\nPCI_ID=1002:%04X\nPCI_SLOT_NAME=%s" % (device, pci),
                         mem_info_vram_total=vram, mem_info_vram_used=used,
                         mem_info_vis_vram_total=vram, subsystem_vendor="0x1002",
                         subsystem_device="0x0c34").items():
            self.put("%s/%s" % (folder, k), v)
        for k, v in files.items():
            self.put("%s/%s" % (folder, k), v)
        monitor = folder + "/hwmon/hwmon%d" % self.cards
        for k, v in dict(name="amdgpu", temp1_label="edge", temp2_label="junction", temp3_label="mem",
                         in0_label="vddgfx", power1_cap=750000000, freq1_input=132000000).items():
            self.put("%s/%s" % (monitor, k), v)
        self.put("%s/drm/%s/dev" % (folder, name), "226:%d" % self.cards)
        os.makedirs(os.path.join(self.top, "sys/class/drm"), exist_ok=True)
        os.symlink("../../devices/pci%s:00/%s/drm/%s" % (domain, pci, name),
                   os.path.join(self.top, "sys/class/drm", name))
        os.symlink("../../../" + pci, os.path.join(self.top, folder, "drm", name, "device"))
        self.cards += 1
        return [self.node(i, parts, int(domain, 16), location, bank or vram // parts, units, arch, hive)
                for i in range(parts)]

    def node(self, part, parts, domain, location, bank, units, arch, hive):
        folder = "sys/class/kfd/kfd/topology/nodes/%d" % self.nodes
        gpu_id = 1000 + self.nodes
        self.put(folder + "/gpu_id", gpu_id)
        self.put(folder + "/name", "ip discovery")
        self.properties(folder, simd_count=4 * units // parts, simd_per_cu=4, cu_per_simd_array=10,
                        simd_arrays_per_engine=1, array_count=4, gfx_target_version=arch,
                        location_id=location | (part << 28 if parts > 1 else 0), domain=domain,
                        hive_id=hive, num_xcc=8 // parts or 1, drm_render_minor=128 + self.nodes)
        self.properties(folder + "/mem_banks/0", heap_type=1, size_in_bytes=bank, flags=0)
        os.makedirs(os.path.join(self.top, folder, "io_links"), exist_ok=True)
        self.nodes += 1
        return gpu_id

    def process(self, pid, name, kfd=(), clients=()):
        """kfd: (gpu_id, bytes); clients: (pci, id, vram KiB, gtt KiB)"""
        self.put("proc/%d/comm" % pid, name)
        for gpu_id, size in kfd:
            self.put("sys/class/kfd/kfd/proc/%d/vram_%d" % (pid, gpu_id), size)
        os.makedirs(os.path.join(self.top, "proc/%d/fd" % pid), exist_ok=True)
        for fd, (pci, client, vram, gtt) in enumerate(clients, 3):
            os.symlink("/dev/dri/renderD128", os.path.join(self.top, "proc/%d/fd/%d" % (pid, fd)))
            self.put("proc/%d/fdinfo/%d" % (pid, fd),
                     "pos:\t0\ndrm-driver:\tamdgpu\ndrm-pdev:\t%s\ndrm-client-id:\t%d\n"
                     "drm-memory-vram:\t%d KiB\ndrm-memory-gtt: \t%d KiB" % (pci, client, vram, gtt))


MI300X = 206141652992


def mi300x(top, mode="SPX", memory="NPS1", used=297312256, bank=None, **files):
    s = System(top)
    parts = {"SPX": 1, "DPX": 2, "QPX": 4, "CPX": 8}[mode]
    s.host(2 << 40, 1 << 40, rocm="6.2.4-120")
    ids = s.card("0000:c1:00.0", 0x74a1, MI300X, used, 304, 90402, parts, bank,
                 hive=0x1234, current_compute_partition=mode, current_memory_partition=memory,
                 available_compute_partition="SPX, DPX, QPX, CPX", available_memory_partition="NPS1, NPS4",
                 mem_info_gtt_total=1 << 40, mem_info_gtt_used=20 * MIB, **files)
    return s, ids


def mi250x(top):
    s = System(top)
    s.host(512 << 30, 400 << 30)
    for bus in ("29", "2c"):
        s.card("0000:%s:00.0" % bus, 0x7408, 65520 * MIB, 10 * MIB, 110, 90010, hive=7)
    return s


def strix(top, pages=16376832, gtt=None, vram=512 * MIB, host=125 << 30, available=110 << 30, used=GIB):
    s = System(top)
    s.host(host, available)
    s.put("sys/module/ttm/parameters/pages_limit", pages)
    s.put("sys/module/amdgpu/parameters/gttsize", "-1")
    s.card("0000:c4:00.0", 0x1586, vram, 200 * MIB, 40, 110501, bank=pages * 4096,
           mem_info_gtt_total=pages * 4096 if gtt is None else gtt, mem_info_gtt_used=used)
    return s


def desktop(top):
    s = System(top)
    s.host(64 << 30, 50 << 30)
    ids = s.card("0000:03:00.0", 0x744c, 25753026560, 3 * GIB, 96, 110000,
                 mem_info_gtt_total=32 << 30, mem_info_gtt_used=100 * MIB)
    s.process(4711, "Xorg", clients=[("0000:03:00.0", 5, 700 * 1024, 50 * 1024),
                                     ("0000:03:00.0", 5, 700 * 1024, 50 * 1024),
                                     ("0000:0b:00.0", 6, 999 * 1024, 0)])
    s.process(5000, "python3", kfd=[(ids[0], 2 * GIB)],
              clients=[("0000:03:00.0", 9, 2049 * 1024, 0)])
    s.process(6000, "bash")
    return s
