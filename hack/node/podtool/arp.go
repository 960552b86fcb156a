//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"syscall"
)

// The lengths and numbers of RFC 826, for IPv4 on Ethernet.
const (
	frameLength = 14 + 28
	request     = 1
	reply       = 2
)

// ask sends three ARP requests for an address, with the sender 0.0.0.0 as RFC 5227 has it for probes: nobody changes
// their table for them. It returns the MACs that answer until the context ends.
func ask(ctx context.Context, device string, addr netip.Addr) ([]net.HardwareAddr, error) {
	link, err := net.InterfaceByName(device)
	if err != nil {
		return nil, err
	}
	proto := int(binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, syscall.ETH_P_ARP)))
	fd, err := syscall.Socket(syscall.AF_PACKET, syscall.SOCK_RAW|syscall.SOCK_NONBLOCK|syscall.SOCK_CLOEXEC, proto)
	if err != nil {
		return nil, fmt.Errorf("open a packet socket: %w", err)
	}
	socket := os.NewFile(uintptr(fd), "arp")
	defer socket.Close()
	if err := syscall.Bind(fd, &syscall.SockaddrLinklayer{Protocol: uint16(proto), Ifindex: link.Index}); err != nil {
		return nil, err
	}
	if deadline, ok := ctx.Deadline(); ok {
		if err := socket.SetReadDeadline(deadline); err != nil {
			return nil, err
		}
	}
	for range 3 {
		if _, err := socket.Write(probe(link.HardwareAddr, addr)); err != nil {
			return nil, err
		}
	}
	return answers(socket, addr)
}

// answers reads replies until the socket's deadline.
func answers(socket *os.File, addr netip.Addr) (macs []net.HardwareAddr, err error) {
	for frame := make([]byte, 2048); ; {
		n, err := socket.Read(frame)
		if os.IsTimeout(err) {
			return macs, nil
		}
		if err != nil {
			return macs, err
		}
		mac, of, ok := parse(frame[:n])
		known := func(m net.HardwareAddr) bool { return slices.Equal(m, mac) }
		if ok && of == addr && !slices.ContainsFunc(macs, known) {
			macs = append(macs, mac)
		}
	}
}

// probe returns the frame of a request.
func probe(from net.HardwareAddr, addr netip.Addr) []byte {
	frame := append(bytes.Repeat([]byte{0xff}, 6), from...) // to everybody
	frame = binary.BigEndian.AppendUint16(frame, syscall.ETH_P_ARP)
	frame = append(frame, 0, 1, 8, 0, 6, 4, 0, request) // Ethernet, IPv4, their lengths
	frame = append(frame, from...)
	frame = append(frame, 0, 0, 0, 0)
	frame = append(frame, make([]byte, 6)...)
	return append(frame, addr.AsSlice()...)
}

// parse returns whose MAC a reply has for which address.
func parse(frame []byte) (net.HardwareAddr, netip.Addr, bool) {
	if len(frame) < frameLength || frame[21] != reply {
		return nil, netip.Addr{}, false
	}
	return slices.Clone(net.HardwareAddr(frame[22:28])), netip.AddrFrom4([4]byte(frame[28:32])), true
}
